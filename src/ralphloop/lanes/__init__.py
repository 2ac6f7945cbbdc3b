"""Several stories at once: work trees beside the checkout, one queue for landing."""
