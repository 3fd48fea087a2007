"""Pictures and lines of text of an episode under way; imported when the first one is asked for."""
