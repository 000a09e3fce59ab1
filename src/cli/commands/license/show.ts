import { z } from 'zod';
import { answeredAt, request, requestAndShow } from '../../client/request.ts';
import { defineCommand, type GlobalOptions } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import { formatFields, formatTable, instant, type Shown } from '../../format.ts';
import { licenseKeyPositional, readLicenseKey } from '../../values.ts';
import { changeRow } from './history.ts';
import { licenseFields, licensesPath, licenseView } from './license.ts';
import { type ChangeObject, type SoldLicenseObject, changeList, licenseList } from '../../../wire/license.ts';

const product = z.object({ product_key: z.string(), name: z.string() });

const shownChanges = 5;

export const command = defineCommand({
  command: 'show <key..>',
  describe: 'Show everything known about a license key',
  builder: { key: licenseKeyPositional },
  examples: [['latchkey license show ABCDE-FGHJK-LMNPQ-RSTUV', 'with its purchase and last changes']],
  epilogue: 'An agent knows no purchases or products. It shows the answer that software gets from it.',
  handler: async (args, output) => {
    const key = readLicenseKey(args.key);
    const found = await request(args, { path: licensesPath, query: { license_key: key } }, licenseList);
    // An agent has no list. An authority does not list an unknown key, which verify reports with the usual error.
    const [license] = found.ok ? found.data.licenses : [];
    if (!found.ok && found.problem !== 'not_the_authority') return found.report(output);
    if (!found.ok || license === undefined) {
      const verify = { path: '/api/v2/license/verify', query: { license_key: key } };
      return await requestAndShow(args, output, verify, licenseView);
    }
    const name = await nameOfProduct(args, license.product_link);
    const history = await lastChanges(args, license.license_key);
    if (args.json) output.printJson({ license, product_name: name, changes: history });
    else await output.show(formatLicense(license, name, history), answeredAt(found.answer));
    return exitCode.done;
  },
});

async function nameOfProduct(options: GlobalOptions, key: string): Promise<string | null> {
  const result = await request(options, { path: `/admin/v1/products/${encodeURIComponent(key)}` }, product);
  return result.ok ? result.data.name : null;
}

async function lastChanges(options: GlobalOptions, key: string): Promise<readonly ChangeObject[]> {
  const path = `${licensesPath}/${encodeURIComponent(key)}/history`;
  const result = await request(options, { path, query: { limit: shownChanges } }, changeList);
  return result.ok ? result.data.changes : [];
}

function formatLicense(
  license: SoldLicenseObject,
  name: string | null,
  history: readonly ChangeObject[],
): Shown {
  const fields = formatFields({
    ...licenseFields(license),
    'product name': name,
    purchase: license.purchase_id ?? 'none: not sold here',
    refunded: instant(license.refunded_at),
  });
  return history.length === 0 ? fields : [fields, formatTable(history.map(changeRow))];
}
