#!/usr/bin/env python3
"""Makes picture files with Pillow and ImageMagick, and says what Pillow reads from them.

    make_pictures.py FOLDER

FOLDER/NAME.EXT is a picture, and FOLDER/NAME.EXT.expected is its pixels: "CHANNELS HEIGHT WIDTH LARGEST", a line feed,
and planes of bytes as Pillow has them after ImageOps.exif_transpose. LARGEST is the largest difference that is allowed.
"""

import os
import random
import subprocess
import sys

from PIL import Image, ImageOps

WIDTH, HEIGHT = 37, 23


def source(mode):
    """A picture of smooth colours with some noise."""
    random.seed(7)
    pixels = []
    for y in range(HEIGHT):
        for x in range(WIDTH):
            noise = random.randrange(16)
            colour = (x * 6 + noise, y * 10 + noise, (x + y) * 4 + noise, 255 - x * 5)
            pixels.append(colour[:3])
    image = Image.new("RGB", (WIDTH, HEIGHT))
    image.putdata(pixels)
    if mode == "RGBA":
        image = image.convert("RGBA")
        image.putalpha(Image.linear_gradient("L").resize((WIDTH, HEIGHT)))
        return image
    return image.convert(mode)


def save(folder, name, image, largest=0, **options):
    """Saves a picture by Pillow, and what Pillow then reads."""
    path = os.path.join(folder, name)
    image.save(path, **options)
    expect(path, largest)


def magick(folder, name, *arguments, largest=0):
    """Makes a picture by ImageMagick, and writes what Pillow reads from it."""
    path = os.path.join(folder, name)
    plain = os.path.join(folder, "source")
    source("RGB").save(plain, "PPM")
    subprocess.run(["convert", "ppm:" + plain, *arguments, path], check=True)
    os.remove(plain)
    expect(path, largest)


def is_grey(image):
    if image.mode in ("1", "L", "LA", "I;16"):
        return True
    if image.mode != "P":
        return False
    palette = image.getpalette()
    used = palette[: 3 * (max(image.getdata()) + 1)]
    return used[0::3] == used[1::3] == used[2::3]


def expect(path, largest):
    with Image.open(path) as opened:
        opened.seek(0)
        opened.load()
        # Pillow turns a TIFF file when it loads the file.
        turned = opened if opened.format == "TIFF" else ImageOps.exif_transpose(opened)
        grey = is_grey(turned)
        if turned.mode.startswith("I;16"):
            values = [value >> 8 for value in turned.getdata()]
            turned = Image.new("L", turned.size)
            turned.putdata(values)
        bands = [turned.convert("L")] if grey else turned.convert("RGB").split()
    with open(path + ".expected", "wb") as file:
        file.write(f"{len(bands)} {bands[0].height} {bands[0].width} {largest}\n".encode())
        for band in bands:
            file.write(band.tobytes())


def exif(orientation):
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags.tobytes()


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    rgb, grey, palette, inks = source("RGB"), source("L"), source("P"), source("CMYK")
    transparent = source("RGBA")
    save(folder, "rgb.jpg", rgb)
    save(folder, "grey.jpe", grey, format="JPEG")
    save(folder, "progressive.jfif", rgb, progressive=True)
    save(folder, "cmyk.jpeg", inks)
    magick(folder, "ycck.jpg", "-colorspace", "CMYK", "-quality", "90")
    magick(folder, "cmyk-magick.jpg", "-colorspace", "CMYK", "-sampling-factor", "4:4:4")
    for orientation in range(1, 9):
        save(folder, f"turned-{orientation}.jpg", rgb, exif=exif(orientation))
    save(folder, "turned.png", rgb, exif=exif(6))
    save(folder, "turned.webp", rgb, lossless=True, exif=exif(8))
    save(folder, "turned.tif", rgb, tiffinfo={0x0112: 6})
    for name, image in (("rgb", rgb), ("grey", grey), ("palette", palette), ("bit", source("1"))):
        save(folder, name + ".png", image)
        save(folder, name + ".bmp", image)
        save(folder, name + ".tiff", image)
        save(folder, name + "-lzw.tif", image, compression="tiff_lzw")
        save(folder, name + ".gif", image)
    save(folder, "transparent.png", transparent)
    save(folder, "transparent.tif", transparent)
    save(folder, "transparent.webp", transparent, lossless=True, exact=True)
    save(folder, "lossy.webp", rgb, quality=80)
    save(folder, "lossless.webp", rgb, lossless=True)
    save(folder, "animated.webp", rgb, save_all=True, append_images=[rgb.transpose(Image.FLIP_TOP_BOTTOM)], lossless=True)
    save(folder, "deflate.tif", rgb, compression="tiff_adobe_deflate")
    save(folder, "packbits.tif", rgb, compression="packbits")
    save(folder, "jpeg.tif", rgb, compression="jpeg", largest=1)
    save(folder, "cmyk.tif", inks, largest=1)
    save(folder, "fax.tif", source("1"), compression="group4")
    magick(folder, "deep.tif", "-colorspace", "Gray", "-depth", "16", largest=1)
    magick(folder, "big-endian.tif", "-define", "tiff:endian=msb", "-compress", "none")
    magick(folder, "tiled.tif", "-define", "tiff:tile-geometry=16x16", "-compress", "LZW")
    magick(folder, "planes.tif", "-interlace", "plane", "-compress", "none")
    magick(folder, "old.bmp", "-define", "bmp:format=bmp2", "-type", "TrueColor")
    magick(folder, "runs.bmp", "-colors", "16", "-type", "Palette", "-compress", "RLE")
    magick(folder, "short.bmp", "-define", "bmp:subtype=RGB565", "-type", "TrueColor", largest=0)
    magick(folder, "interlaced.gif", "-interlace", "gif")
    magick(folder, "magick.webp", "-quality", "70")
    frames = [palette, palette.transpose(Image.FLIP_TOP_BOTTOM)]
    save(folder, "animated.gif", frames[0], save_all=True, append_images=frames[1:])


if __name__ == "__main__":
    main()
