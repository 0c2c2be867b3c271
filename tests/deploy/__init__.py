"""What is in deploy/, run or checked as far as that goes without a container engine."""
