"""The figures of the page, of notebooks and of ``Report.figure``: one builder each, as data for plotly."""
