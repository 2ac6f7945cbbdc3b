"""Settings: what there is (`model`), where it is written (`sources`), what is in force (`load`)."""
