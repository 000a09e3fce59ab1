import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dayMs, hourMs, minuteMs } from '../../../../src/domain/time.ts';
import { issuedKey, issuedProduct, otherKey } from '../../leases/support/issuer-harness.ts';
import { buyerEmail, BuyersShop, fieldsOf, textOf } from '../support/shop.ts';

const opened = new AsyncDisposableStack();
let shop: BuyersShop;
beforeAll(async () => {
  const buyers = { title: 'Ada & Sons', support_url: 'https://help.example/?a=1&b=2', accent: '#ffd000' };
  shop = opened.use(await new BuyersShop().open({ buyers }));
});
afterAll(() => opened.disposeAsync());

const notFound = 'No license fits these entries. Compare them with the mail about your purchase.';

describe('the start', () => {
  test('is a page in the name of the seller, with strict headers and without scripts and cookies', async () => {
    const page = await shop.customer().get();
    expect(page.status).toBe(200);
    expect(page.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      vary: 'Accept-Language',
    });
    expect(page.headers['content-security-policy']).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/]{43}='; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
    );
    expect(page.headers).not.toHaveProperty('set-cookie');
    expect(page.body).not.toMatch(/<script|style="|javascript:/);
    expect(page.body).toContain('<a href="https://help.example/?a=1&#38;b=2">Help</a>');
    expect(textOf(page)).toContain('Ada & Sons\nYour license\n');
  });

  test.each([
    ['', 'en'],
    ['de', 'de'],
    ['de-AT,de;q=0.9,en;q=0.8', 'de'],
    ['fr-FR,en;q=0.3,de;q=0.7', 'de'],
    ['EN-us, de;q=0.9', 'en'],
    ['de;q=0, fr', 'en'],
    [';;q=;,=,', 'en'],
  ])('is in the language that the browser prefers: %j is %s', async (accepted, language) => {
    const page = await shop.customer().get('/license', { 'accept-language': accepted });
    expect(page.body).toContain(`<html lang="${language}">`);
  });

  test('links to the other language, which forms keep', async () => {
    const customer = shop.customer();
    const english = await customer.get('/license', { 'accept-language': 'en' });
    expect(english.body).toMatch(/<a href="\/license\?lang=de" lang="de" hreflang="de"\s*>Deutsch<\/a/);
    const german = await customer.get('/license?lang=de', { 'accept-language': 'en' });
    expect(textOf(german)).toContain('Ihre Lizenz');
    const fields = { ...fieldsOf(german, '/license'), license_key: issuedKey, email: buyerEmail };
    const license = await customer.post('/license', fields, { 'accept-language': 'en' });
    expect(textOf(license)).toContain(
      'Lizenzschlüssel\n…DDDD\nStatus\nGültig\nGültig bis\nUnbefristet\nPlätze\n',
    );
    const back = await customer.post('/license', fieldsOf(license, '/license'), { 'accept-language': 'de' });
    expect(textOf(back)).toContain('License key\n…DDDD\nStatus\nValid\n');
  });

  test('is reached from a link of any site, and from the address of a form', async () => {
    const headers = { referer: 'https://shop.example/account', 'sec-fetch-site': 'cross-site' };
    expect((await shop.customer().get('/license', headers)).status).toBe(200);
    const form = await shop.customer().get('/license/seat');
    expect([form.status, form.headers['location']]).toEqual([303, '/license']);
  });

  test('is not at the other listeners, and nowhere by default', async () => {
    const admin = await fetch(`${shop.daemon.addresses.tcp}/license`);
    expect(admin.status).toBe(404);
    await using other = await new BuyersShop().open({ buyers: false });
    const page = await other.customer().get();
    expect([page.status, page.body]).toMatchObject([404, { code: 'route_not_found' }]);
    expect((await other.customer().open(issuedKey)).status).toBe(404);
  });
});

describe('a license', () => {
  test('opens with the license key and the e-mail address, and has its devices', async () => {
    await using own = await new BuyersShop().open();
    const laptop = await own.device('Laptop <b>&amp;');
    await laptop.ask('take');
    own.time.advance(hourMs);
    const page = await own.customer().open(issuedKey);
    expect(page.status).toBe(200);
    const today = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' });
    const contact = today.format(own.time.read().wall - hourMs);
    expect(textOf(page)).toContain(
      `License key\n…DDDD\nStatus\nValid\nValid until\nWithout end\nSeats\n1 of 2 taken\nDevices\nLaptop <b>&amp;\nLast contact: ${contact}\nFree the seat`,
    );
    expect(textOf(page)).not.toContain(issuedKey);
    await own.disable();
    expect(textOf(await own.customer().open(issuedKey))).toContain('Status\nDisabled');
  });

  test.each([
    ['in lower case', issuedKey.toLowerCase(), buyerEmail],
    ['with what surrounds it in a mail', `License key: “${issuedKey.replaceAll('-', '‑')}”.`, buyerEmail],
    ['with an address in another case', issuedKey, ' Ada@Example.COM '],
  ])('opens with a key that was pasted %s', async (_, licenseKey, email) => {
    expect((await shop.customer().open(licenseKey, email)).status).toBe(200);
  });

  test('gives the same answer, byte for byte, whatever does not fit', async () => {
    const answers = await Promise.all(
      [
        ['ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZ', buyerEmail],
        [issuedKey, 'eve@example.com'],
        [otherKey, 'eve@example.com'],
        [issuedKey, ''],
        ['', buyerEmail],
        ['x'.repeat(9000), 'x'.repeat(9000)],
        [`${issuedKey}\0`, `${buyerEmail}\0.`],
      ].map(([licenseKey = '', email = '']) => shop.customer().open(licenseKey, email)),
    );
    const [first] = answers;
    expect([first?.status, textOf(first ?? { body: '' })]).toEqual([404, expect.stringContaining(notFound)]);
    for (const answer of answers) {
      const { date: _, 'x-request-id': __, ...headers } = answer.headers;
      const { date: ___, 'x-request-id': ____, ...expected } = first?.headers ?? {};
      expect([answer.status, answer.body, headers]).toEqual([404, first?.body, expected]);
    }
  });

  test('opens with an international address, however it is typed', async () => {
    const sold = {
      product_key: issuedProduct,
      license_key: 'INTERNATIONAL',
      buyer_email: 'Zoë@müller.example',
    };
    await shop.admin('POST', '/purchases', sold);
    for (const typed of ['Zoë@müller.example', 'zoë@MÜLLER.example', 'Zoë@müller.example'.normalize('NFD')])
      expect([typed, (await shop.customer().open('INTERNATIONAL', typed)).status]).toEqual([typed, 200]);
  });

  test('is refused after 10 ms, so that the time does not tell whether there is such a license', async () => {
    const customer = shop.customer();
    for (const [path, fields] of [
      ['/license', { email: 'eve@example.com' }],
      ['/license/seat', { token: 'forged' }],
    ] as const) {
      const start = performance.now();
      const { status } = await customer.post(path, { license_key: issuedKey, ...fields });
      const elapsed = performance.now() - start;
      expect([status, Math.ceil(elapsed)]).toEqual([
        expect.toBeOneOf([403, 404]),
        expect.toSatisfy((ms: number) => ms >= 10),
      ]);
    }
  });

  test('opens with the license key alone, if the seller says so', async () => {
    await using own = await new BuyersShop().open({ buyers: { ask_email: false } });
    expect((await own.customer().get()).body).not.toContain('id="email"');
    expect((await own.customer().post('/license', { license_key: issuedKey })).status).toBe(200);
    expect((await own.customer().post('/license', { license_key: 'AAAAA' })).status).toBe(404);
  });
});

describe('a form of an open page', () => {
  test.each([
    ['no token', { token: '' }],
    ['a forged token', { token: `9999999999999.${'A'.repeat(43)}` }],
    ['the token of another license', { license_key: otherKey }],
  ])('is refused with %s', async (_, changes) => {
    const customer = shop.customer();
    const fields = { ...fieldsOf(await customer.open(issuedKey), '/license/answer'), ...changes };
    for (const path of ['/license/seat', '/license/answer']) {
      const refused = await customer.post(path, fields);
      expect([refused.status, textOf(refused)]).toEqual([
        403,
        expect.stringContaining('This page was open for too long.'),
      ]);
    }
  });

  test('is refused after half an hour', async () => {
    const customer = shop.customer();
    const fields = fieldsOf(await customer.open(issuedKey), '/license/answer');
    shop.time.advance(29 * minuteMs);
    expect((await customer.post('/license', fields)).status).toBe(200);
    shop.time.advance(minuteMs);
    expect((await customer.post('/license', fields)).status).toBe(403);
  });

  test('is refused if a page of another site has sent it', async () => {
    const customer = shop.customer();
    const fields = { license_key: issuedKey, email: buyerEmail };
    const { host, hostname } = new URL(shop.daemon.addresses.public ?? '');
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: `https://${hostname}.evil.example` },
      { referer: `http://${host}/license` },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ])
      expect([headers, (await customer.post('/license', fields, headers)).status]).toEqual([headers, 403]);
    for (const origin of [`http://${host}`, `https://${hostname}`]) {
      const headers = { origin, referer: `${origin}/license`, 'sec-fetch-site': 'same-origin' };
      expect((await customer.post('/license', fields, headers)).status).toBe(200);
    }
  });

  test('is not read from JSON', async () => {
    const body = JSON.stringify({ license_key: issuedKey, email: buyerEmail });
    const headers = { 'content-type': 'application/json', 'x-forwarded-for': '198.51.100.251' };
    const answer = await shop.devices.post('/license', { headers, body });
    expect([answer.status, textOf(answer)]).toEqual([404, expect.stringContaining(notFound)]);
  });

  test('is refused as a page if it is too large or cannot be read', async () => {
    const customer = shop.customer();
    const large = await customer.post(
      '/license',
      { license_key: 'x'.repeat(33 * 1024) },
      { 'accept-language': 'de' },
    );
    expect([large.status, textOf(large)]).toEqual([413, expect.stringContaining('Die Datei ist zu groß')]);
    const broken = await customer.upload('/license', { license_key: issuedKey });
    expect(broken.status).toBe(404);
    const cut = await shop.devices.post('/license', {
      headers: { 'content-type': 'multipart/form-data; boundary=x', 'x-forwarded-for': '198.51.100.250' },
      body: '--x\r\nContent-Disposition: form-data',
    });
    expect([cut.status, textOf(cut)]).toEqual([400, expect.stringContaining('This request cannot be read.')]);
  });
});

describe('a seat', () => {
  const free = 'Seats can be freed three times within 30 days';

  test('is freed after a confirmation, three times within 30 days', async () => {
    await using own = await new BuyersShop().open({ terms: { seats: 4 } });
    const devices = await Promise.all(['a', 'b', 'c', 'd'].map((name) => own.device(name)));
    for (const device of devices) await device.ask('take');
    own.time.advance(2 * dayMs);
    const customer = own.customer();
    const page = await customer.open(issuedKey);
    expect(textOf(page)).toContain(`${free}: 3 left.`);
    const question = await customer.post('/license/seat', fieldsOf(page, '/license/seat'));
    expect(textOf(question)).toContain('Free the seat of a?\na loses the license at its next contact.');
    expect(textOf(question)).toContain('This is one of them; left after it: 2.');
    const kept = await customer.post('/license', fieldsOf(question, '/license'));
    expect(textOf(kept)).toContain('Seats\n4 of 4 taken');

    let left = await customer.freeSeat(page);
    expect(textOf(left)).toContain(
      'The seat of a is free.\nLicense key\n…DDDD\nStatus\nValid\nValid until\nWithout end\nSeats\n3 of 4 taken',
    );
    const again = { ...fieldsOf(page, '/license/seat'), confirmed: 'yes' };
    expect(textOf(await customer.post('/license/seat', again))).toContain('This seat is free already.');
    for (const moves of [1, 0]) {
      left = await customer.freeSeat(left);
      expect(textOf(left)).toContain(`${free}: ${moves} left.`);
    }
    const refused = await customer.post('/license/seat', fieldsOf(left, '/license/seat'));
    expect(textOf(refused)).toContain(
      'The seat of d cannot be freed now\nSeats of this license were freed three times',
    );
    const forced = await customer.post('/license/seat', {
      ...fieldsOf(left, '/license/seat'),
      confirmed: 'yes',
    });
    expect(forced.status).toBe(409);

    own.time.advance(29 * dayMs);
    const later = await customer.open(issuedKey);
    expect(textOf(later)).toContain('No device uses this license.');
    expect((await devices[0]?.ask('renew'))?.notice?.state).toBe('ended');
    const { acts } = (await own.admin('GET', '/audit?act=activation.end')) as { acts: { actor: string }[] };
    expect(acts.map(({ actor }) => actor)).toEqual(['buyer', 'buyer', 'buyer']);
  });

  test('is shown as free if the button was pressed twice', async () => {
    await using own = await new BuyersShop().open();
    for (const name of ['a', 'b']) await (await own.device(name)).ask('take');
    own.time.advance(2 * dayMs);
    const customer = own.customer();
    const form = { ...fieldsOf(await customer.open(issuedKey), '/license/seat'), confirmed: 'yes' };
    const press = async (): Promise<string> => textOf(await customer.post('/license/seat', form));
    const [first, second] = await Promise.all([press(), press()]);
    expect(first).toContain('The seat of a is free.');
    expect(second).toContain('This seat is free already.');
  });

  test('is not freed while its device is in use, nor by the page of another license', async () => {
    await using own = await new BuyersShop().open();
    await (await own.device('desk')).ask('take');
    const customer = own.customer();
    const page = await customer.open(issuedKey);
    const stays = await customer.post('/license/seat', fieldsOf(page, '/license/seat'));
    expect(textOf(stays)).toContain('The seat of desk cannot be freed now\nThe device is in use.');
    const { device = '' } = fieldsOf(page, '/license/seat');
    own.time.advance(2 * dayMs);
    const other = await customer.open(otherKey);
    const foreign = { ...fieldsOf(other, '/license/answer'), device, confirmed: 'yes' };
    expect(textOf(await customer.post('/license/seat', foreign))).toContain('This seat is free already.');
    expect(textOf(await customer.open(issuedKey))).toContain('Seats\n1 of 2 taken');
  });

  test('is freed without a move if its lease has ended', async () => {
    await using own = await new BuyersShop().open({ terms: { hold: 90 * 86_400 } });
    await (await own.device('old')).ask('take');
    own.time.advance(31 * dayMs);
    const customer = own.customer();
    const page = await customer.open(issuedKey);
    const question = await customer.post('/license/seat', fieldsOf(page, '/license/seat'));
    expect(textOf(question)).toContain('old has no valid lease any more.');
    expect(textOf(question)).toContain('This does not count as one of the three times within 30 days.');
    expect(textOf(await customer.freeSeat(page))).toContain('The seat of old is free.');
  });
});
