"""Views: the kinds of virtual files in which an array is presented. One module per kind; ``registry`` lists them."""
