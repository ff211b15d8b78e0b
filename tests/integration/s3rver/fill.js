// Puts the files of a folder below "fashion/" and 1100 small pictures below "pictures/" into the bucket "data".
//   node fill.js ENDPOINT FOLDER
const fs = require("fs");
const path = require("path");
const zlib = require("zlib");

const [, , endpoint, folder] = process.argv;

async function put(key, body) {
  const response = await fetch(`${endpoint}/data/${key}`, {
    method: "PUT",
    body,
    headers: {
      // The server looks up the key, and does not check Signature Version 4.
      authorization:
        "AWS4-HMAC-SHA256 Credential=S3RVER/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=00",
      "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
      "x-amz-date": new Date().toISOString().replace(/[-:]|\.\d+/g, ""),
    },
  });
  if (!response.ok) throw new Error(`${key}: ${response.status} ${await response.text()}`);
}

// A grey picture of 2 by 2 pixels, all of them `value`.
function picture(value) {
  const crcOf = (bytes) => {
    let crc = ~0;
    for (const byte of bytes) {
      crc ^= byte;
      for (let i = 0; i < 8; ++i) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc >>> 0;
  };
  const chunk = (type, data) => {
    const bytes = Buffer.alloc(12 + data.length);
    bytes.writeUInt32BE(data.length);
    bytes.write(type, 4, "latin1");
    data.copy(bytes, 8);
    bytes.writeUInt32BE(crcOf(bytes.subarray(4, 8 + data.length)), 8 + data.length);
    return bytes;
  };
  const header = Buffer.from([0, 0, 0, 2, 0, 0, 0, 2, 8, 0, 0, 0, 0]);
  const rows = Buffer.from([0, value, value, 0, value, value]);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", header),
    chunk("IDAT", zlib.deflateSync(rows)),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

(async () => {
  for (const name of fs.readdirSync(folder)) {
    if (name.endsWith(".gz")) await put(`fashion/${name}`, fs.readFileSync(path.join(folder, name)));
  }
  for (let i = 0; i < 1100; ++i) {
    await put(`pictures/${i % 2 ? "dark" : "light"}/${i}.png`, picture(i % 2 ? i % 100 : 255 - (i % 100)));
  }
})().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
