"""NumPy files: .npy and .npz."""
