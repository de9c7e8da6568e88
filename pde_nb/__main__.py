"""`python -m pde_nb` is the program `pde`."""

from pde_nb.cli.app import pde

if __name__ == "__main__":
    pde()
