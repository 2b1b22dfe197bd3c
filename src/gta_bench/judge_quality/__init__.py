"""How good a judge is: labels and calibration, panels, cascades, bridges, floors, attacks."""
