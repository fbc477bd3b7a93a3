"""Settings of the libraries behind PyTorch: read and set freely, they change nothing here."""

from picograd.backends import cpu as cpu
from picograd.backends import cuda as cuda
from picograd.backends import cudnn as cudnn
from picograd.backends import mkldnn as mkldnn
from picograd.backends import mps as mps

mkl = openmp = opt_einsum = mkldnn
