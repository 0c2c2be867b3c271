"""The positions flow: deliveries of a tick in, cloaked regions out, all accounted for."""
