"""A module for each family of models: how to tell it, and which weight of its is which of ours.

The families are those that `export.imports.detect` names; the other modules are what several of them share.
"""
