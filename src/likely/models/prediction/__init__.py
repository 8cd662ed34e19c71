"""Prediction: networks that learn their features without labels and are then taught with them."""
