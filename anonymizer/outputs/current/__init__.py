"""Current groups: what has been published and still holds, for subscribers that come later."""
