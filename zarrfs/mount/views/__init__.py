"""Views: the kinds of virtual files that present an array. Each kind is one module; ``registry`` lists them."""
