#!/usr/bin/env python3
"""Makes picture files with Pillow and ImageMagick, and records the pixels that Pillow reads from them.

    make_pictures.py FOLDER

FOLDER/pictures/NAME.EXT is a picture, and NAME.EXT.expected has its pixels: "CHANNELS HEIGHT WIDTH", a line feed,
and planes of bytes as Pillow has them after ImageOps.exif_transpose.

FOLDER/sets/flowers is a data set with files to skip, and beside it are archives of this folder. FOLDER/sets/expected has
the means of the training samples' channels, then the standard deviations, a line each.
"""

import bz2
import os
import random
import subprocess
import sys
import tarfile
import zipfile

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


def save(folder, name, image, **options):
    """Saves a picture by Pillow, and what Pillow then reads."""
    path = os.path.join(folder, name)
    image.save(path, **options)
    expect(path)


def magick(folder, name, *arguments):
    """Makes a picture by ImageMagick, and writes what Pillow reads from it."""
    path = os.path.join(folder, name)
    plain = os.path.join(folder, "source")
    source("RGB").save(plain, "PPM")
    subprocess.run(["convert", "ppm:" + plain, *arguments, path], check=True)
    os.remove(plain)
    expect(path)


def is_grey(image):
    if image.mode in ("1", "L", "LA", "I;16"):
        return True
    if image.mode != "P":
        return False
    palette = image.getpalette()
    used = palette[: 3 * (max(image.getdata()) + 1)]
    return used[0::3] == used[1::3] == used[2::3]


def expect(path):
    with Image.open(path) as opened:
        opened.seek(0)
        opened.load()
        # Pillow turns a TIFF file when it loads the file.
        turned = opened if opened.format == "TIFF" else ImageOps.exif_transpose(opened)
        grey = is_grey(turned)
        if turned.mode.startswith("I;16"):
            # Pillow does not convert 16 bits. Tandem rounds them to the nearest of 8 bits.
            values = [(value + 128) // 257 for value in turned.getdata()]
            turned = Image.new("L", turned.size)
            turned.putdata(values)
        bands = [turned.convert("L")] if grey else turned.convert("RGB").split()
    with open(path + ".expected", "wb") as file:
        file.write(f"{len(bands)} {bands[0].height} {bands[0].width}\n".encode())
        for band in bands:
            file.write(band.tobytes())


def exif(orientation):
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags.tobytes()


def make_pictures(folder):
    os.makedirs(folder)
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
    save(folder, "jpeg.tif", rgb, compression="jpeg")
    save(folder, "cmyk.tif", inks)
    save(folder, "fax.tif", source("1"), compression="group4")
    magick(folder, "deep.tif", "-colorspace", "Gray", "-depth", "16")
    magick(folder, "big-endian.tif", "-define", "tiff:endian=msb", "-compress", "none")
    magick(folder, "tiled.tif", "-define", "tiff:tile-geometry=16x16", "-compress", "LZW")
    magick(folder, "planes.tif", "-interlace", "plane", "-compress", "none")
    magick(folder, "old.bmp", "-define", "bmp:format=bmp2", "-type", "TrueColor")
    magick(folder, "runs.bmp", "-colors", "16", "-type", "Palette", "-compress", "RLE")
    magick(folder, "short.bmp", "-define", "bmp:subtype=RGB565", "-type", "TrueColor")
    magick(folder, "interlaced.gif", "-interlace", "gif")
    magick(folder, "magick.webp", "-quality", "70")
    frames = [palette, palette.transpose(Image.FLIP_TOP_BOTTOM)]
    save(folder, "animated.gif", frames[0], save_all=True, append_images=frames[1:])



def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def make_set(folder):
    """A set of pictures in the formats of cameras and web pages, with files that are no data."""
    flowers = os.path.join(folder, "flowers")
    kinds = [
        ("rose/a.JPG", {"format": "JPEG", "exif": exif(3)}),
        ("rose/deep/er/b.png", {}),
        ("rose/c.webp", {"lossless": True}),
        ("tulip/d.tif", {"compression": "tiff_lzw"}),
        ("tulip/e.bmp", {}),
        ("tulip/f.jfif", {"format": "JPEG", "progressive": True}),
    ]
    sums = [0] * 3, [0] * 3
    for part in ("Training", "valid", "Test"):
        for number, (name, options) in enumerate(kinds):
            path = os.path.join(flowers, part, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            image = source("RGB").rotate(number * 7)
            image.save(path, **options)
            if part != "Training":
                continue
            with Image.open(path) as opened:
                for channel, band in enumerate(ImageOps.exif_transpose(opened).convert("RGB").split()):
                    values = list(band.getdata())
                    sums[0][channel] += sum(values)
                    sums[1][channel] += sum(value * value for value in values)
    for name in (
        "README.txt", "Training/rose/a.heic", "Training/rose/b.heic", "Training/tulip/notes.txt", "Training/.DS_Store",
        "Training/rose/._a.JPG", "Training/rose/@eaDir/a.JPG", "__MACOSX/Training/rose/._a.JPG", "Training/.git/x.png",
    ):
        write(os.path.join(flowers, name), b"no picture")
    count = len(kinds) * WIDTH * HEIGHT
    means = [total / count for total in sums[0]]
    deviations = [(squares / count - mean * mean) ** 0.5 for squares, mean in zip(sums[1], means)]
    with open(os.path.join(folder, "expected"), "w", encoding="ascii") as file:
        for number in means + deviations:
            file.write(f"{number!r}\n")
    with zipfile.ZipFile(os.path.join(folder, "flowers.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        for root, _, names in os.walk(flowers):
            for name in names:
                path = os.path.join(root, name)
                archive.write(path, os.path.relpath(path, folder))
    # Without the outer folder, and with "./" before each name.
    subprocess.run(["tar", "-C", flowers, "-cf", os.path.join(folder, "flowers.tar"), "."], check=True)
    for ending in ("gz", "bz2", "xz"):
        with tarfile.open(os.path.join(folder, "flowers.tar." + ending), "w:" + ending) as archive:
            archive.add(flowers, "flowers")
    subprocess.run(["zstd", "-q", os.path.join(folder, "flowers.tar")], check=True)


def make_bad(folder):
    """A set with 30 pictures that cannot be read."""
    for name in ("rose", "tulip"):
        os.makedirs(os.path.join(folder, name))
        source("RGB").save(os.path.join(folder, name, "good.png"))
    for number in range(30):
        write(os.path.join(folder, "rose", f"bad-{number:02}.jpg"), b"no picture")


def make_tables(folder):
    """A table in each compression. libbz2 and zstd also make files of several streams."""
    os.makedirs(folder)
    rows = ["a,b\n"] + [f"{number},{number * 2}\n" for number in range(1000)]
    text = "".join(rows).encode()
    half = len("".join(rows[:500]))
    write(os.path.join(folder, "plain.csv"), text)
    write(os.path.join(folder, "one.csv.bz2"), bz2.compress(text))
    write(os.path.join(folder, "two.csv.bz2"), bz2.compress(text[:half]) + bz2.compress(text[half:]))
    with zipfile.ZipFile(os.path.join(folder, "table.csv.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner/table.csv", text)
        archive.writestr("__MACOSX/inner/._table.csv", b"no table")
    with zipfile.ZipFile(os.path.join(folder, "stored.csv.zip"), "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("table.csv", text)
    for name, options in (("one", []), ("best", ["-19"]), ("long", ["--long=27"])):
        path = os.path.join(folder, name + ".csv.zst")
        subprocess.run(["zstd", "-q", *options, "-o", path, os.path.join(folder, "plain.csv")], check=True)
    parts = []
    for number, part in enumerate((text[:half], text[half:])):
        path = os.path.join(folder, f"part{number}")
        write(path, part)
        subprocess.run(["zstd", "-q", "--rm", path], check=True)
        with open(path + ".zst", "rb") as file:
            parts.append(file.read())
        os.remove(path + ".zst")
    write(os.path.join(folder, "two.csv.zst"), b"".join(parts))


def main():
    root = sys.argv[1]
    make_pictures(os.path.join(root, "pictures"))
    make_set(os.path.join(root, "sets"))
    make_bad(os.path.join(root, "bad"))
    make_tables(os.path.join(root, "tables"))


if __name__ == "__main__":
    main()
