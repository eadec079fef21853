"""The picture that the generators of the examples give to their networks."""

import numpy
from PIL import Image, ImageDraw


def draw(width, height):
    """Smooth colours with hard edges on them."""
    y, x = numpy.mgrid[0:height, 0:width]
    colours = numpy.stack([x * 255 // width, y * 255 // height, (x + y) * 255 // (width + height)], axis=2)
    image = Image.fromarray(colours.astype(numpy.uint8))
    pen = ImageDraw.Draw(image)
    pen.ellipse([width // 5, height // 4, width // 2, height * 3 // 4], fill=(200, 40, 90))
    pen.line([0, height, width, 0], fill=(20, 220, 60), width=5)
    pen.rectangle([width * 2 // 3, height // 3, width * 3 // 4, height // 2], fill=(0, 0, 0))
    return image


def save(path, width, height):
    """Saves the picture and returns it as a batch of one, normalised as torchvision does for ImageNet."""
    from torchvision.transforms import functional

    draw(width, height).save(path, optimize=True)
    pixels = functional.pil_to_tensor(Image.open(path).convert("RGB"))
    pixels = functional.convert_image_dtype(pixels)
    return functional.normalize(pixels, mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])[None]
