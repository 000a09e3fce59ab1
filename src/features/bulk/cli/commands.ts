import { saveResponse } from '../../../cli/client/save.ts';
import { type Command, defineCommand, positional, textOption } from '../../../cli/command.ts';
import { defineImport, scopeAccount, scopeProduct } from './import.ts';

/** Declares a command that saves all records of a kind into a new CSV file. */
export function defineExport(noun: 'license' | 'purchase' | 'coupon', describe: string): Command {
  const file = positional('New CSV file; an existing file is never overwritten', 'file');
  const [scope, parameter, option] =
    noun === 'coupon'
      ? ([
          'account',
          'account_id',
          textOption('Account of the coupons; default: the account named default', 'account'),
        ] as const)
      : (['product', 'product_key', textOption('Only of this product', 'product')] as const);
  return defineCommand({
    command: 'export <file>',
    describe,
    builder: { file, [scope]: option },
    examples: [
      [`latchkey ${noun} export ${noun}s.csv`, `import it with: latchkey ${noun} import ${noun}s.csv`],
    ],
    handler: async (args, output) => {
      const query = { [parameter]: (args as Readonly<Record<string, unknown>>)[scope] as string | undefined };
      const path = `/admin/v1/${noun}s/export`;
      return await saveResponse(args['file'], { path, query }, args, output);
    },
  });
}

export const license = {
  commands: [
    defineImport({
      describe: 'Import licenses from a CSV file of another store',
      noun: 'license',
      scope: scopeProduct,
    }),
    defineExport('license', 'Export all licenses to a new CSV file'),
  ],
};

export const purchase = {
  commands: [
    defineImport({
      describe: 'Import purchases, with their licenses, from a CSV file of another store',
      noun: 'purchase',
      scope: scopeProduct,
    }),
    defineExport('purchase', 'Export all purchases to a new CSV file'),
  ],
};

export const coupon = {
  commands: [
    defineImport({
      describe: 'Import coupons from a CSV file of another store',
      noun: 'coupon',
      scope: scopeAccount,
    }),
    defineExport('coupon', 'Export the coupons of an account to a new CSV file'),
  ],
};
