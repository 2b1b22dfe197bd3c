"""The variance of an image's Laplacian, to the digit that OpenCV gives."""

import numpy as np
import numpy.typing as npt
from PIL import Image

# OpenCV's weights of red, green and blue in fifteen bits; Pillow's differ in a few pixels.
RED, GREEN, BLUE, HALF, BITS = 9798, 19235, 3735, 1 << 14, 15
BAND = 512  # rows at a time, so that a large image does not take a gigabyte


def laplacian_variance(image: Image.Image) -> float:
    """`cv2.Laplacian(cv2.cvtColor(image, COLOR_RGB2GRAY), CV_64F).var()`."""
    bordered = np.pad(_grey(image), 1, mode="reflect")
    height, width = bordered.shape[0] - 2, bordered.shape[1] - 2
    total, squares = 0, 0
    for top in range(0, height, BAND):
        band = bordered[top : min(top + BAND, height) + 2].astype(np.int64)
        laplacian = (
            band[:-2, 1:-1] + band[2:, 1:-1] + band[1:-1, :-2] + band[1:-1, 2:]
        ) - 4 * band[1:-1, 1:-1]
        total += int(laplacian.sum())
        squares += int((laplacian * laplacian).sum())
    count: int = height * width
    return float((squares * count - total * total) / (count * count))


def _grey(image: Image.Image) -> npt.NDArray[np.uint8]:
    colours = np.asarray(image)
    grey = np.empty(colours.shape[:2], dtype=np.uint8)
    for top in range(0, len(colours), BAND):
        band = colours[top : top + BAND].astype(np.int32)
        mixed = band[..., 0] * RED + band[..., 1] * GREEN + band[..., 2] * BLUE + HALF
        grey[top : top + BAND] = mixed >> BITS
    return grey
