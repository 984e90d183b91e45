"""Models of tasks as draws from one population, tuned by the marginal likelihood."""
