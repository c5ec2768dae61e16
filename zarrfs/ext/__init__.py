"""The public interface for packages that extend zarrfs.

Each module has the base classes and types of one kind of extension. Their names and signatures are stable: they change
only with a new minor version, after a warning in the changelog. A package registers an extension as an entry point:

========================== =============================== =====================================
entry point group          name                            object
========================== =============================== =====================================
zarrfs.codecs              name in Zarr v3 metadata        subclass of a class of ``ext.codecs``
zarrfs.data_types          name in Zarr v3 metadata        instance of ``ext.data_types.DataTypeFamily``
zarrfs.chunk_grids         name in Zarr v3 metadata        subclass of ``ext.chunks.ChunkGrid``
zarrfs.chunk_key_encodings name in Zarr v3 metadata        subclass of ``ext.chunks.ChunkKeyEncoding``
zarrfs.formats             ``zarr_format`` of the nodes    subclass of ``ext.formats.Format``
zarrfs.stores              scheme of the URL               function; see ``ext.stores.StoreOpener``
zarrfs.views               any                             subclass of ``ext.views.View``
zarrfs.member_names        any                             function from a Group to names of members or None
========================== =============================== =====================================

``zarrfs.testing`` has the contracts of codecs, formats, stores and views as tests. docs/extensions.md is the guide.
"""
