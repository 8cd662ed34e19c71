"""What the pages are drawn with: elements that escape all text, and charts, points and graphs as SVG."""
