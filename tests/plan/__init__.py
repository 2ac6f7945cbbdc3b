"""From words to stories."""
