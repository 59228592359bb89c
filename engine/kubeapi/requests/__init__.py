"""Parts of requests: selectors, options, and checks of bodies before they are decoded."""
