"""What an assistant keeps for itself: short memories and conversations."""
