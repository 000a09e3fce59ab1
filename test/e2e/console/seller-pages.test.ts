import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { Activation } from '../../../src/features/leases/domain/lease.ts';
import { buildActivation } from '../../features/leases/support/activation-builders.ts';
import { storeActivations } from '../../features/leases/support/stored-activations.ts';
import { AdminDaemon, describeInBrowser, OpenConsole } from '../../support/process/console-daemon.ts';
import type { ConsolePage } from '../../support/process/console-page.ts';

const markup = '<img src=x onerror=document.title=1>';
/** Markup without white space, as a coupon code and a license key have none. */
const tightMarkup = '<svg/onload=document.title=1>';
const day = 86_400_000;

describeInBrowser('the console of an authority', (opened) => {
  let shop: AdminDaemon;
  let shown: OpenConsole;
  let page: ConsolePage;

  beforeAll(async () => {
    shop = await AdminDaemon.start(opened);
    await shop.post('/admin/v1/products', { name: 'Editor', product_key: 'EDITOR', seats: '3' });
    await shop.post('/admin/v1/products', { name: `Pack ${markup}`, product_key: 'PACK' });
    await shop.post('/admin/v1/collections', {
      name: 'Writing',
      collection_id: 'writing',
      product_keys: ['EDITOR'],
    });
    await sell('ines.moreau@example.com', 'INES-SEATS');
    await sell('jonas@example.com', 'JONAS');
    await sell('pack@example.com', tightMarkup, 'PACK');
    const seats = ['Studio iMac', 'MacBook', 'ThinkPad of Léo'];
    storeActivations(shop.stateDir, [
      ...seats.map((name, index) => activation('INES-SEATS', `device-${index}`, name)),
      activation(tightMarkup, 'device-x', markup, 'PACK'),
    ]);
    const spring = { coupon_type: 'collection', collection_id: 'writing', percent_off: 20, code: 'SPRING' };
    await shop.post('/api/v2/coupons', {
      ...spring,
      minimum_purchase_amount: 6000,
      usage_limit: 1,
      notes: markup,
    });
    await shop.post('/api/v2/coupons', { coupon_type: 'multi', amount_off: 500, code: tightMarkup });
    await shop.post('/admin/v1/tokens', { scopes: ['verify'], label: markup });
    shown = opened.use(await OpenConsole.of(shop));
    ({ page } = shown);
  });

  function sell(email: string, key: string, product = 'EDITOR'): Promise<unknown> {
    return shop.post('/admin/v1/purchases', { product_key: product, buyer_email: email, license_key: key });
  }

  async function license(
    key: string,
  ): Promise<{ uses: number; enabled: boolean; refunded_at: string | null }> {
    const path = `/admin/v1/licenses?license_key=${encodeURIComponent(key)}`;
    const { licenses } = await shop.read<{
      licenses: { uses: number; enabled: boolean; refunded_at: string | null }[];
    }>(path);
    const [found] = licenses;
    if (found === undefined) throw new Error(`there is no license ${key}`);
    return found;
  }

  test('the menu leads to each page of a seller by keyboard alone, and axe-core finds nothing serious in any', async () => {
    await page.open('', 'Overview');
    const titles = [
      'Licenses',
      'Devices',
      'Products',
      'Purchases',
      'Coupons',
      'Import and export',
      'Tokens',
      'Accounts',
    ];
    for (const title of titles) {
      await page.press(title);
      await page.headed(title);
      await page.settled();
      expect(await page.focused()).toBe(title);
      expect(await page.seriousProblems(), title).toEqual([]);
    }
    expect(page.errors).toEqual([]);
  });

  test('a person finds by the e-mail address who holds the third seat, and frees that seat', async () => {
    await page.open('licenses', 'Licenses');
    await page.fill(searchLabel, 'NES.mo');
    await page.shows('ines.moreau@example.com');
    await page.shows('latchkey license list --search NES.mo');
    expect(await page.text()).not.toContain('jonas@example.com');
    await page.press('INES-SEATS');
    await page.headed('INES-SEATS');
    await page.shows('Copy the key');
    await page.shows('Seats: 3 of 3 taken');
    await page.shows('ThinkPad of Léo');
    const cells = `[...document.querySelectorAll('tbody tr:nth-child(3) td')].map((cell) => cell.innerText)`;
    expect((await page.page.evaluate<string[]>(cells)).slice(0, 2)).toEqual(['3', 'ThinkPad of Léo']);
    expect(await page.seriousProblems()).toEqual([]);
    await page.press('Free seat: ThinkPad of Léo');
    await page.shows('another device can take the seat');
    await page.shows('latchkey activation end ');
    expect(await page.seriousProblems()).toEqual([]);
    await page.press('Free seat');
    await page.shows('Seats: 2 of 3 taken');
    await page.press('Block: ThinkPad of Léo');
    await page.shows('This cannot be undone.');
    await page.shows('latchkey activation block ');
    await page.press('Block');
    await page.shows('blocked');
    await page.open('devices?which=blocked', 'Devices');
    await page.shows('ThinkPad of Léo');
    expect(page.errors).toEqual([]);
  });

  test('a person records, undoes, disables, enables and refunds by keyboard alone, and the history shows each', async () => {
    await page.open('licenses/JONAS', 'JONAS');
    await page.press('Record a use');
    await page.shows('latchkey use JONAS');
    await page.press('Record a use');
    await page.shows('Used: 0 → 1 use');
    expect(await license('JONAS')).toMatchObject({ uses: 1 });
    await page.press('Undo a use');
    await page.shows('latchkey unuse JONAS');
    await page.press('Undo a use');
    await page.shows('Use undone: 1 → 0 uses');
    await page.press('Disable');
    await page.shows('You can enable the key again.');
    await page.shows('latchkey disable JONAS');
    await page.press('Disable');
    await page.shows('Your software gets the answer: disabled.');
    expect(await license('JONAS')).toMatchObject({ enabled: false });
    await page.press('Enable');
    await page.shows('latchkey enable JONAS');
    await page.press('Enable');
    await page.shows('Your software gets the answer: valid.');
    await page.press('Refund');
    await page.shows('No money is moved');
    await page.shows('latchkey purchase refund ');
    await page.press('Refund');
    await page.shows('The purchase was refunded, and the key is disabled.');
    expect(await license('JONAS')).toMatchObject({ enabled: false, refunded_at: expect.any(String) });
    await page.shows('by a person in the console');
    expect(page.errors).toEqual([]);
  });

  test('a cart shows whether the coupon SPRING still works, and why it does not', async () => {
    await page.open('coupons?code=SPRING', 'Coupons');
    await page.press('SPRING');
    await page.headed('SPRING');
    await page.fill('Price', '49');
    await page.shows('SPRING does not work for this cart.');
    await page.shows('The cart costs less than the minimum of the coupon.');
    await page.fill('Pieces', '2');
    await page.shows('SPRING works for this cart.');
    await page.shows('98.00 − 19.60 = 78.40');
    await page.shows('latchkey coupon quote SPRING EDITOR=4900cx2');
    expect(await page.seriousProblems()).toEqual([]);
    const cart = { code: 'SPRING', items: [{ product_key: 'EDITOR', amount: 9900 }] };
    await shop.post('/agent/v1/redemptions', { ...cart, order: 'A-1' });
    await page.fill('Pieces', '3');
    await page.shows('The coupon was used as often as its limit allows.');
    await page.open('coupons', 'Coupons');
    await page.fill('Coupon code', 'NOTHING');
    await page.fill('Price', '10,50');
    await page.shows('There is no coupon with this code.');
    expect(page.errors).toEqual([]);
  });

  test('a person creates, changes, ends and deletes coupons by keyboard alone', async () => {
    await page.open('coupons', 'Coupons');
    await page.press('Create a coupon');
    await page.fill('Code', 'AUTUMN');
    await page.fill('Discount', '12.5%');
    await page.fill('Limit', '7');
    await page.shows('latchkey coupon create --code AUTUMN --type multi --percent-off 12.5 --usage-limit 7');
    expect(await page.seriousProblems()).toEqual([]);
    await page.page.keyboard.press('Enter');
    await page.headed('AUTUMN');
    await page.shows('12.5 % off');
    await page.press('Change');
    await page.fill('Limit', '9');
    await page.shows('--usage-limit 9');
    await page.page.keyboard.press('Enter');
    await page.shows('9 uses are left.');
    await page.press('End');
    await page.shows('latchkey coupon end ');
    await page.press('End');
    await page.shows('ended');
    await page.press('Delete');
    await page.shows('its code is free for another coupon');
    await page.press('Delete');
    await page.headed('Coupons');
    expect(await shop.read('/agent/v1/coupons?code=AUTUMN')).toEqual({ coupons: [] });
    await page.press('Create a coupon');
    await page.fill('Code', 'SPRING');
    await page.fill('Discount', '5.00');
    await page.page.keyboard.press('Enter');
    await page.shows('The account already has a coupon with this code.');
    await page.page.keyboard.press('Escape');
    expect(page.errors).toEqual([]);
  });

  test('a change of the limit of a coupon keeps the time at which it ends, and the lines of its notes', async () => {
    const ends = new Date(Date.now() + 20 * day).toISOString().replace(/\.\d+Z/, '+00:00');
    const notes = 'first line\nsecond line';
    const terms = { coupon_type: 'multi', percent_off: 5, code: 'KEEPS', end_date: ends, notes };
    const { id } = await shop.post('/api/v2/coupons', terms);
    await page.open(`coupons/${String(id)}`, 'KEEPS');
    await page.press('Change');
    await page.fill('Limit', '3');
    await page.shows(`latchkey coupon update ${String(id)} --usage-limit 3`);
    expect(await page.text()).not.toContain('--end-date');
    await page.page.keyboard.press('Enter');
    await page.shows('3 uses are left.');
    expect(await shop.read(`/agent/v1/coupons/${String(id)}`)).toMatchObject({
      end_date: ends,
      notes,
      usage_limit: 3,
    });
  });

  test('a person adds a product, sees its secret once, sells it, changes its seats and archives it', async () => {
    await page.open('products', 'Products');
    await page.press('Add a product');
    await page.fill('Name', 'Sketch & Draw');
    await page.fill('Seats', '2');
    await page.shows("latchkey product add 'Sketch & Draw' --seats 2");
    await page.page.keyboard.press('Enter');
    await page.shows('This is the only time that the secret of the product is shown.');
    expect(await page.text()).toMatch(/lk_prod_[0-9a-f]+/);
    expect(await page.focused()).toBe('Close');
    await page.page.keyboard.press('Enter');
    await page.press('Sketch & Draw');
    await page.headed('Sketch & Draw');
    expect(await page.text()).not.toContain('lk_prod_');
    await page.press('Sell a license');
    await page.fill('E-mail address of the customer', 'zoe@example.com');
    await page.shows('--email zoe@example.com');
    await page.page.keyboard.press('Enter');
    await page.shows('The license key of zoe@example.com:');
    await page.press('Close');
    await page.press('Change');
    await page.fill('Seats', '4');
    await page.page.keyboard.press('Enter');
    await page.shows('A license works on 4 devices at the same time.');
    await page.press('New secret');
    await page.shows('--keep-old 24h');
    await page.page.keyboard.press('Escape');
    await page.press('Archive');
    await page.shows('No new license is issued');
    await page.press('Archive');
    await page.shows('archived');
    await page.open('purchases?search=zoe@example.com', 'Purchases');
    await page.shows('1 of 1');
    await page.press(/^Refund: zoe@example\.com, /);
    await page.press('Refund');
    await page.shows('refunded');
    await page.open('audit?act=purchase.refund', 'Audit');
    await page.shows('zoe@example.com');
    expect(page.errors).toEqual([]);
  });

  test('a person issues a token that is shown once, and revokes the token', async () => {
    await page.open('tokens', 'Tokens');
    await page.press('Issue a token');
    await page.fill('Label', 'Web shop');
    await page.focus(/^sell /);
    await page.page.keyboard.press('Space');
    await page.focus(/^coupons:read /);
    await page.page.keyboard.press('Space');
    await page.shows("latchkey token issue --scope coupons:read,sell --label 'Web shop'");
    expect(await page.seriousProblems()).toEqual([]);
    await page.press('Issue a token');
    await page.shows('This is the only time that the token is shown.');
    expect(await page.text()).toMatch(/lk_tok_[0-9a-f]+/);
    await page.press('Close');
    await page.shows('Web shop');
    expect(await page.text()).not.toContain('lk_tok_');
    await page.open('audit?act=token.issue', 'Audit');
    await page.shows('Web shop');
    await page.open('tokens', 'Tokens');
    await page.press('Rotate: Web shop');
    await page.shows('--keep-old 24h');
    await page.press('Rotate');
    await page.shows('This is the only time that the new token is shown.');
    expect(await page.text()).toMatch(/lk_tok_[0-9a-f]+/);
    await page.press('Close');
    await page.press('Revoke: Web shop');
    await page.shows('latchkey token revoke ');
    await page.press('Revoke');
    await expect.poll(() => page.text()).not.toContain('Web shop');
    expect(await page.focused()).toBe('Tokens');
    expect(page.errors).toEqual([]);
  });

  test('a person adds an account and creates a new API key of an account', async () => {
    await page.open('accounts', 'Accounts');
    await page.press('Add an account');
    await page.fill('Name', 'Studio Halm');
    await page.shows("latchkey account add 'Studio Halm'");
    await page.page.keyboard.press('Enter');
    await page.shows('This is the only time that the API key is shown.');
    await page.press('Close');
    await page.press('New API key: Studio Halm');
    await page.shows('--keep-old 24h');
    await page.press('New API key');
    await page.shows('This is the only time that the new API key is shown.');
    expect(await page.text()).toMatch(/lk_api_[0-9a-f]+/);
    await page.press('Close');
    expect(page.errors).toEqual([]);
  });

  test('a file is checked before it is imported, and rejected rows are shown with their lines', async () => {
    await page.open('exchange', 'Import and export');
    await choose(
      'license_key,product_key,buyer_email\nNEW-1,EDITOR,new@example.com\nNEW-2,NOPRODUCT,new@example.com\n',
    );
    await page.press('Check the file');
    await page.shows('1 row can be imported, 0 here already, 1 rejected.');
    await page.shows('There is no such product.');
    expect(await shop.read('/admin/v1/licenses?license_key=NEW-1')).toEqual({ licenses: [] });
    expect(await page.seriousProblems()).toEqual([]);
    await page.press('Import');
    await page.shows('1 row imported, 0 here already, 1 rejected.');
    expect(await license('NEW-1')).toMatchObject({ uses: 0 });
    expect(page.errors).toEqual([]);
  });

  test('a German file in Windows-1252 is recognized, mapped, checked and imported by keyboard alone', async () => {
    const file = [
      'Lizenzschlüssel;E-Mail;Datum;Zustand;Gesperrt;Bemerkung',
      'ÄNNE-1;aenne@example.com;01.02.2025;WAHR;nein;Stammkunde',
      'B-2;b@example.com;13.02.2025;FALSCH;nein;',
      'C-3;c@example.com;28.02.2025;WAHR;ja;',
      'D-4;niemand;28.02.2025;WAHR;nein;',
      'E-5;auch niemand;28.02.2025;WAHR;vielleicht;',
    ];
    await page.open('exchange', 'Import and export');
    await choose(Buffer.from(file.join('\r\n'), 'latin1'), 'kunden.csv');
    await page.shows('It is right if you can read this: Lizenzschlüssel');
    expect(await chosen(['Between its cells', 'Encoding', 'Exported by'])).toEqual([
      'semicolons',
      'Windows-1252',
      'another program',
    ]);
    expect(
      await chosen(['Read Lizenzschlüssel as', 'Read E-Mail as', 'Read Datum as', 'Read Bemerkung as']),
    ).toEqual(['License key', 'E-mail address of the customer', 'Date of the sale', 'not imported']);
    expect(await chosen(['How Datum is written'])).toEqual(['day.month.year']);
    await page.shows('2025-02-01');
    await page.shows('aenne@example.com · b@example.com · c@example.com');
    await page.shows('It looks like a state of keys. Say what it is, or that it is not imported.');
    expect(await isEnabled('Check the file')).toBe(false);
    await take('Read Gesperrt as', 'Enabled');
    await page.shows('Say what “nein” means.');
    for (const [word, meaning] of [
      ['“nein”', 'enabled'],
      ['“ja”', 'disabled'],
      ['“vielleicht”', 'disabled'],
      ['“wahr”', 'enabled'],
      ['“falsch”', 'disabled'],
    ] as const)
      await take(new RegExp(`^${word}`), meaning);
    expect(await page.seriousProblems()).toEqual([]);
    await page.shows(
      `latchkey license import kunden.csv --encoding windows-1252 --separator semicolon --map 'license_key=Lizenzschlüssel,`,
    );
    await page.shows('Not imported: Bemerkung.');
    await take('Product of rows that name none', 'Editor');
    await page.shows('--product EDITOR');
    await expect.poll(() => isEnabled('Check the file')).toBe(true);
    await page.press('Check the file');
    await page.shows('3 rows can be imported, 0 here already, 2 rejected. Ignored columns: Bemerkung.');
    await page.shows('E-mail address of the customer (E-Mail) must be');
    const cells = `[...document.querySelectorAll('table')].at(-1).querySelector('tbody tr').innerText`;
    expect(
      (await page.page.evaluate<string>(cells))
        .trim()
        .split(/\s*\t\s*/)
        .slice(1),
    ).toEqual(['2', '5', 'niemand']);
    expect(await shop.read('/admin/v1/licenses?license_key=C-3')).toEqual({ licenses: [] });
    await page.press('Import');
    await page.shows('3 rows imported, 0 here already, 2 rejected.');
    expect(await license('ÄNNE-1')).toMatchObject({
      enabled: true,
      date: expect.stringMatching(/^2025-02-01T/),
    });
    expect([await license('B-2'), await license('C-3')]).toMatchObject([
      { enabled: false },
      { enabled: false },
    ]);
    expect(page.errors).toEqual([]);
  });

  test('the sales of Gumroad are recognized, and imported without a decision about their columns', async () => {
    await shop.post('/admin/v1/products', { name: 'Press', product_key: 'press' });
    const sales = readFileSync(join(import.meta.dirname, '../../features/bulk/cli/gumroad-sales.csv'));
    // A new page: what was chosen there before is gone.
    await page.open('', 'Overview');
    await page.open('exchange', 'Import and export');
    await take('What', 'Purchases');
    await choose(sales, 'sales.csv');
    await page.shows('E-mail address of the customer, as that store writes it');
    await page.shows('latchkey purchase import sales.csv --from gumroad');
    expect(await chosen(['Exported by'])).toEqual(['Gumroad: sales']);
    await page.press('Check the file');
    await page.shows('9 rows can be imported, 0 here already, 0 rejected.');
    await page.shows('2 rows without a license key left out.');
    await page.press('Import');
    await page.shows('9 rows imported');
    await take('Exported by', 'another');
    await page.shows('Read Purchase Email as');
    expect(page.errors).toEqual([]);
  });

  test('a purchase shows that its license has ended', async () => {
    const sale = { product_key: 'EDITOR', buyer_email: 'ended@example.com', license_key: 'ENDED' };
    await shop.post('/admin/v1/purchases', { ...sale, expires_at: '2026-01-01' });
    await page.open('purchases?search=ended@example.com', 'Purchases');
    await page.shows('ended\n1 Jan 2026');
    expect(await page.seriousProblems()).toEqual([]);
    expect(page.errors).toEqual([]);
  });

  test('the purchases of a filter are saved as a file, each with its license in a row', async () => {
    await page.open('purchases?search=jonas@example.com', 'Purchases');
    await page.shows('1 of 1');
    await keepSaved();
    await page.press('Download CSV');
    await expect.poll(() => page.page.evaluate('window.saved === undefined')).toBe(false);
    const [columns = '', sold = '', ...rest] = (await page.page.evaluate<string>('window.saved'))
      .trim()
      .split('\r\n');
    expect(columns).toBe('purchase_id,date,product_key,buyer_email,license_key,refunded,refunded_at');
    expect(sold).toContain(',EDITOR,jonas@example.com,JONAS,');
    expect(rest).toEqual([]);
  });

  /** Keeps the text of the next file that the page saves. */
  async function keepSaved(): Promise<void> {
    await page.page.evaluate(
      `(() => { delete window.saved; const make = URL.createObjectURL; URL.createObjectURL = (blob) => { window.saved = blob.text(); return make.call(URL, blob); }; })()`,
    );
  }

  test('an export is saved as a file with whole license keys', async () => {
    await page.open('exchange', 'Import and export');
    await keepSaved();
    await page.press('Export');
    await expect.poll(() => page.page.evaluate('window.saved === undefined')).toBe(false);
    expect(await page.page.evaluate<string>('window.saved')).toContain(
      '\nINES-SEATS,EDITOR,ines.moreau@example.com,',
    );
  });

  async function choose(content: string | Uint8Array, name = 'licenses.csv'): Promise<void> {
    const bytes = JSON.stringify([...Buffer.from(content)]);
    await page.page.evaluate(`(() => {
      const input = document.querySelector('input[type=file]');
      const chosen = new DataTransfer();
      chosen.items.add(new File([new Uint8Array(${bytes})], ${JSON.stringify(name)}));
      input.files = chosen.files;
      input.dispatchEvent(new Event('change', { bubbles: true }));
    })()`);
    await page.shows('Columns of the file');
  }

  /** The options that fields with these labels have. */
  async function chosen(labels: readonly string[]): Promise<string[]> {
    return await page.page.evaluate<string[]>(`${JSON.stringify(labels)}.map((label) =>
      [...document.querySelectorAll('select')].find((each) =>
        (each.getAttribute('aria-label') ?? each.labels[0]?.textContent) === label,
      )?.selectedOptions[0]?.textContent,
    )`);
  }

  /** Goes to a field by Tab, and chooses the option that begins with a text. */
  async function take(label: string | RegExp, option: string): Promise<void> {
    await page.focus(label);
    await page.page.keyboard.type(option);
  }

  async function isEnabled(button: string): Promise<boolean> {
    return await page.page.evaluate<boolean>(
      `[...document.querySelectorAll('button')].some((each) => each.textContent === ${JSON.stringify(button)} && !each.disabled)`,
    );
  }

  test('markup in every stored field is shown as text', async () => {
    for (const [hash, heading, text] of [
      ['products', 'Products', `Pack ${markup}`],
      ['products/PACK', `Pack ${markup}`, 'paid once'],
      ['licenses', 'Licenses', tightMarkup],
      [`licenses/${encodeURIComponent(tightMarkup)}`, tightMarkup, markup],
      ['devices', 'Devices', markup],
      ['purchases', 'Purchases', tightMarkup],
      ['coupons', 'Coupons', tightMarkup],
      ['coupons/1', 'SPRING', markup],
      ['coupons/2', tightMarkup, '5.00 off'],
      ['tokens', 'Tokens', markup],
      ['audit', 'Audit', `Pack ${markup}`],
    ] as const) {
      await page.open(hash, heading);
      await page.shows(text);
      expect(await page.page.evaluate(`document.querySelector('img, svg[onload]')`), hash).toBeNull();
      expect(await page.page.evaluate('document.title')).toBe(`${heading} – Latchkey`);
    }
    expect(page.errors).toEqual([]);
  });

  test('a search sends one request for a text that is typed at once, and reads one page of the list', async () => {
    const asked: string[] = [];
    const typing = await shown.newPage();
    typing.page.on('request', (request) => asked.push(request.url()));
    await typing.signIn({ admin: true });
    await typing.open('licenses', 'Licenses');
    await typing.settled();
    await typing.fill(searchLabel, 'jonas@example.com');
    await typing.shows('1 of 1');
    const searches = asked.filter((url) => url.includes('/admin/v1/licenses?search='));
    // A slow machine may pause between two letters, but not at each.
    expect(searches.length).toBeLessThan('jonas@example.com'.length);
    expect(searches.at(-1)).toMatch(/search=jonas%40example\.com&limit=25$/);
    expect(await typing.page.evaluate('history.length')).toBeLessThan(6);
  });

  test('the key / leads to the search of a list, which asks for three characters', async () => {
    const searching = await shown.newPage();
    await searching.signIn({ admin: true });
    for (const [hash, heading, text, found] of [
      ['licenses', 'Licenses', 'es-sea', 'INES-SEATS'],
      ['purchases', 'Purchases', 'es-sea', 'INES-SEATS'],
      ['devices', 'Devices', 'thinkpad', 'ThinkPad of Léo'],
    ] as const) {
      await searching.open(hash, heading);
      await searching.settled();
      await searching.page.keyboard.press('/');
      await searching.page.keyboard.type('es');
      await searching.shows('Type 3 characters or more.');
      await searching.page.keyboard.press('Control+A');
      await searching.page.keyboard.type(text);
      await searching.shows(`--search ${text}`);
      await searching.shows(found);
      expect(await searching.seriousProblems()).toEqual([]);
    }
    expect(searching.errors).toEqual([]);
  });

  test('a session that only reads sees no whole license key, and shows the commands but cannot act', async () => {
    const reader = await shown.newPage();
    await reader.signIn({ admin: false });
    await reader.open('licenses', 'Licenses');
    await reader.fill(searchLabel, 'EATS');
    await reader.shows('A session that only reads searches what it sees of a key');
    await reader.fill(searchLabel, '…ats');
    await reader.shows('…ATS');
    expect(await reader.text()).not.toMatch(/~|INES-SEATS/);
    await reader.press('…ATS');
    await reader.headed('…ATS');
    expect(await reader.text()).not.toContain('Copy the key');
    await reader.shows('ThinkPad of Léo');
    await reader.press('Disable');
    await reader.shows('latchkey disable LICENSE_KEY');
    await reader.shows('This session can only look.');
    expect(await reader.page.evaluate('document.querySelector("dialog [type=submit]")')).toBeNull();
    await reader.press('Close');
    // The whole key is in the address, but what the page would copy is masked.
    await reader.open('licenses/INES-SEATS', 'INES-SEATS');
    await reader.shows('ThinkPad of Léo');
    expect(await reader.text()).not.toContain('Copy the key');
    await reader.open('exchange', 'Import and export');
    await reader.shows('This session can only look.');
    expect(
      await reader.page.evaluate(
        '[...document.querySelectorAll("main .section button:not(.command button)")].every((each) => each.disabled)',
      ),
    ).toBe(true);
    await reader.open('coupons?code=SPRING', 'Coupons');
    await reader.press('SPRING');
    await reader.headed('SPRING');
    await reader.fill('Price', '70');
    await reader.shows('SPRING does not work for this cart.');
    expect(await reader.page.evaluate('document.documentElement.outerHTML.includes("INES-SEATS")')).toBe(
      false,
    );
    expect(reader.errors).toEqual([]);
    expect(await license('INES-SEATS')).toMatchObject({ enabled: true });
  });

  test('no page is wider than a narrow screen, and no row is cut there', async () => {
    const narrow = await shown.newPage();
    await narrow.page.setViewportSize({ width: 320, height: 700 });
    await narrow.signIn({ admin: true });
    for (const [hash, heading] of [
      ['licenses', 'Licenses'],
      ['licenses/INES-SEATS', 'INES-SEATS'],
      ['devices', 'Devices'],
      ['products', 'Products'],
      ['products/EDITOR', 'Editor'],
      ['purchases', 'Purchases'],
      ['coupons', 'Coupons'],
      ['coupons/1', 'SPRING'],
      ['exchange', 'Import and export'],
      ['tokens', 'Tokens'],
      ['accounts', 'Accounts'],
    ] as const) {
      await narrow.open(hash, heading);
      await narrow.settled();
      expect(await narrow.page.evaluate('document.documentElement.scrollWidth'), hash).toBe(320);
      const cut = `[...document.querySelectorAll('.rows span')]
        .filter(({ scrollWidth, clientWidth }) => clientWidth > 0 && scrollWidth > clientWidth)
        .map(({ textContent }) => textContent)`;
      expect(await narrow.page.evaluate(cut), hash).toEqual([]);
    }
  });
});

const searchLabel = 'Part of a license key or of an e-mail address';

/** A device with a seat. */
function activation(licenseKey: string, name: string, deviceName: string, productKey = 'EDITOR'): Activation {
  const at = (days: number): number => Date.now() + days * day;
  return buildActivation({
    activationId: `${productKey}-${name}`,
    licenseKey,
    productKey,
    device: name.padEnd(43, '0'),
    deviceName,
    rev: Date.now(),
    expiresAt: at(20),
    seatUntil: at(110),
    createdAt: at(-10),
    renewedAt: at(-1),
  });
}
