"""Parts of polyopt that other software finds through entry points."""
