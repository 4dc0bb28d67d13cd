"""Groups of roles whose pod templates are completed by patches and templates of the same object."""
