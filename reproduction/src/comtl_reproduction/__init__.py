"""The paper's experiments: cells that can be interrupted, statistics, tables and figures."""
