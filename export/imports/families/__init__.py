"""One module for each family of models: how to tell it, and which weight of its is which of ours."""
