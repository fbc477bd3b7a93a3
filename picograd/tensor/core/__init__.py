"""What every function of tensors stands on: recording, gradients, arguments, views, errors."""
