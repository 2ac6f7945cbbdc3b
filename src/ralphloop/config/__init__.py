"""Settings: what there is (`model`), how it is written (`values`), what is in force (`load`)."""
