"""The run directory: manifest, logs, scores; what is finished is never done twice."""
