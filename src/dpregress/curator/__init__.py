"""What looks at raw rows for the curator's own eyes: never to be published."""
