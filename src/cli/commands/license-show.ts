import { z } from 'zod';
import { ask, inquire, toldAt } from '../client/ask.ts';
import { type Command, defineCommand, type GlobalOptions } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { formatFields, formatTable, instant, type Shown } from '../format.ts';
import { licenseKeyOperand, readLicenseKey } from '../license-key-operand.ts';
import { change, changeRow, type Change } from './history.ts';
import { licenseFields, licensesPath, licenseView, soldLicenses, type SoldLicense } from './license-view.ts';

const product = z.object({ product_key: z.string(), name: z.string() });
const changes = z.object({ changes: z.array(change) });

/** How many of the last changes are shown. */
const shownChanges = 5;

/** `license show`: all that is known of a key, as far as this daemon knows it. */
export const showLicense: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('key', licenseKeyOperand)
      .example('latchkey license show ABCDE-FGHJK-LMNPQ-RSTUV', 'with its purchase and last changes')
      .epilogue('An agent knows no purchases or products: it shows what it answers to software.'),
  async (args, output) => {
    const key = readLicenseKey(args.key);
    const found = await inquire(args, { path: licensesPath, query: { license_key: key } }, soldLicenses);
    // An agent has no list, and an authority's answer to an unknown key is the same either way.
    const [license] = found.ok ? found.data.licenses : [];
    if (!found.ok && found.problem !== 'not_the_authority') return found.complain(output);
    if (!found.ok || license === undefined) {
      const request = { path: '/api/v2/license/verify', query: { license_key: key } };
      return await ask(args, output, request, licenseView);
    }
    const name = await nameOfProduct(args, license.product_link);
    const history = await lastChanges(args, license.license_key);
    if (args.json) output.printJson({ license, product_name: name, changes: history });
    else await output.show(formatLicense(license, name, history), toldAt(found.answer));
    return exitCode.done;
  },
);

async function nameOfProduct(options: GlobalOptions, key: string): Promise<string | null> {
  const asked = await inquire(options, { path: `/admin/v1/products/${encodeURIComponent(key)}` }, product);
  return asked.ok ? asked.data.name : null;
}

async function lastChanges(options: GlobalOptions, key: string): Promise<readonly Change[]> {
  const path = `${licensesPath}/${encodeURIComponent(key)}/history`;
  const asked = await inquire(options, { path, query: { limit: shownChanges } }, changes);
  return asked.ok ? asked.data.changes : [];
}

function formatLicense(license: SoldLicense, name: string | null, history: readonly Change[]): Shown {
  const fields = formatFields({
    ...licenseFields(license),
    'product name': name,
    purchase: license.purchase_id ?? 'none: not sold here',
    refunded: instant(license.refunded_at),
  });
  return history.length === 0 ? fields : [fields, formatTable(history.map(changeRow))];
}
