"""Two lines for a trainer: ``from syncscope.callbacks.lightning import SyncscopeCallback``, and pass one to it.

This package loads neither Lightning, transformers nor torch: each module loads the library that it is for.
"""
