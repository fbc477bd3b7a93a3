"""runtime: where kernels run. Compile, allocate, launch; knows nothing of graphs or codegen."""
