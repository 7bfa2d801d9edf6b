"""The documentation as a site: ``python -m docs.site`` builds it, and checks its links.

``contents`` lists the pages. Those of the repository are taken as they are; those of rules, commands, the Python API,
the configuration and the notebooks are made from what they describe. Zensical renders them, without a network.
"""
