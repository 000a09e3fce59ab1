// A web backend with an HTTP helper that rejects every status except 2xx, as axios does. Second
// version of the API.
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';

function call({ method, url, params, data, headers }) {
  return new Promise((resolve, reject) => {
    const target = new URL(url);
    for (const [name, value] of Object.entries(params ?? {})) target.searchParams.append(name, value);
    const body = data === undefined ? undefined : new URLSearchParams(data).toString();
    const type = body === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' };
    const client = target.protocol === 'https:' ? https : http;
    const options = { method, headers: { Accept: 'application/json, text/plain, */*', ...type, ...headers } };
    const request = client.request(target, options, (answer) => {
      const chunks = [];
      answer.on('data', (chunk) => chunks.push(chunk));
      answer.on('error', reject);
      answer.on('end', () => {
        const response = { status: answer.statusCode, data: JSON.parse(Buffer.concat(chunks).toString()) };
        if (response.status >= 200 && response.status < 300) resolve(response);
        else
          reject(
            Object.assign(new Error(`Request failed with status code ${response.status}`), { response }),
          );
      });
    });
    request.on('error', reject);
    request.end(body);
  });
}

const headers = { 'Product-Secret-Key': process.env.PRODUCT_SECRET };
const base = `${process.env.LICENSE_API}/api/v2/license`;

async function check(key) {
  try {
    const { data } = await call({
      method: 'GET',
      url: `${base}/verify`,
      params: { license_key: key },
      headers,
    });
    if (!data.data.enabled) throw Object.assign(new Error('disabled'), { response: data });
    fs.writeFileSync(process.env.LICENSE_FILE, key);
    return 'VALID';
  } catch (error) {
    if (error.response) {
      fs.rmSync(process.env.LICENSE_FILE, { force: true });
      return 'INVALID';
    }
    return fs.existsSync(process.env.LICENSE_FILE) ? 'KEEP' : 'TRY LATER';
  }
}

const [action, key] = process.argv.slice(2);
if (action === 'check') {
  console.log(await check(key));
} else {
  const { data } = await call({
    method: 'PUT',
    url: `${base}/${action}`,
    data: { license_key: key },
    headers,
  });
  if (action === 'usage' || action === 'decrease') console.log(`USES ${data.data.uses}`);
  else console.log(data.data.enabled ? 'ENABLED' : 'DISABLED');
}
