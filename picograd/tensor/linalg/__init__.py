"""Linear algebra: products, decompositions, systems of equations, Fourier transforms."""
