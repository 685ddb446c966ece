"""How a page comes to a browser: routes, who may ask, headers, templates; it knows nothing of what pages show."""
