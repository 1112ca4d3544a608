"""Cross-fitting: fit calibrators on some rows and score their predictions on other rows."""
