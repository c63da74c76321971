"""What each part of the page says, worked out from a `Result` alone; templates only lay it out."""
