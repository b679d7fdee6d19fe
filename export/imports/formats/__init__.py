"""The files that other people's weights come in: what they hold is listed first, and loaded tensor by tensor."""
