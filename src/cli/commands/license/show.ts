import type { z } from 'zod';
import { answeredAt, dataOrNull, request, requestAndShow, type Result } from '../../client/request.ts';
import { CommandError, defineCommand, type GlobalOptions } from '../../command.ts';
import { formatFields, formatTable, instant, type Shown } from '../../format.ts';
import { licenseKeyPositional, readLicenseKey } from '../../values.ts';
import { productObject } from '../../../wire/product.ts';
import { changeRow } from './history.ts';
import { licenseFields, licensesPath, licenseView } from './license.ts';
import { type ChangeObject, type SoldLicenseObject, changeList, licenseList } from '../../../wire/license.ts';

const product = productObject.pick({ name: true });

const shownChanges = 5;

export const command = defineCommand({
  command: 'show <key..>',
  describe: 'Show everything known about a license key',
  builder: { key: licenseKeyPositional },
  examples: [['latchkey license show ABCDE-FGHJK-LMNPQ-RSTUV', 'with its purchase and last changes']],
  epilogue: 'An agent knows no purchases or products. It shows the answer that software gets from it.',
  handler: async (args, output) => {
    const key = readLicenseKey(args.key);
    const found = await findLicense(args, key);
    const license = found?.data.licenses[0];
    // An authority does not list an unknown key, which verify reports with the usual error.
    if (found === null || license === undefined) {
      const verify = { path: '/api/v2/license/verify', query: { license_key: key } };
      return await requestAndShow(args, output, verify, licenseView);
    }
    const name = await nameOfProduct(args, license.product_link);
    const history = await lastChanges(args, license.license_key);
    return await output.result(
      { license, product_name: name, changes: history },
      formatLicense(license, name, history),
      answeredAt(found.answer),
    );
  },
});

/** Null: the daemon is an agent, which has no list. */
async function findLicense(
  options: GlobalOptions,
  key: string,
): Promise<Result<z.infer<typeof licenseList>> | null> {
  try {
    return await request(options, { path: licensesPath, query: { license_key: key } }, licenseList);
  } catch (error) {
    if (error instanceof CommandError && error.refusal?.code === 'not_the_authority') return null;
    throw error;
  }
}

async function nameOfProduct(options: GlobalOptions, key: string): Promise<string | null> {
  const path = `/admin/v1/products/${encodeURIComponent(key)}`;
  return (await dataOrNull(options, { path }, product))?.name ?? null;
}

async function lastChanges(options: GlobalOptions, key: string): Promise<readonly ChangeObject[]> {
  const path = `${licensesPath}/${encodeURIComponent(key)}/history`;
  const list = await dataOrNull(options, { path, query: { limit: shownChanges } }, changeList);
  return list?.changes ?? [];
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
