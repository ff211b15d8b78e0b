// Serves the bucket "data" from a folder on a free port, which it writes to the file "port" in that folder.
const fs = require("fs");
const S3rver = require("s3rver");

const folder = process.argv[2];
new S3rver({
  port: 0,
  address: "127.0.0.1",
  silent: true,
  directory: `${folder}/buckets`,
  configureBuckets: [{name: "data"}],
})
  .run()
  .then((address) => fs.writeFileSync(`${folder}/port`, String(address.port)));
