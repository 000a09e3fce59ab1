import { z } from 'zod';
import { section } from '../../../config/section.ts';
import { onOrSection, optional, shortText, textual } from '../../../config/setting-types.ts';

const color = textual({ expected: 'a color such as "#1d4ed8", in quotes' }, (text) =>
  /^#[0-9a-f]{6}$/i.test(text) ? text.toLowerCase() : undefined,
);

const link = textual({ expected: 'an https URL, or mailto: and an e-mail address' }, (text) =>
  /^(?:https:\/\/|mailto:)[^\s"<>]+$/i.test(text) && URL.canParse(text) ? text : undefined,
);

const buyers = section(
  z.strictObject({
    title: optional(shortText(60)).meta({
      description: 'The heading of the page, such as the name of your shop.',
      defaultText: '`Your license`, in the language of the buyer',
    }),
    support_url: optional(link).meta({
      description: 'Where buyers get help: a page of yours, or `mailto:help@example.com`.',
    }),
    accent: color.prefault('#1d4ed8').meta({ description: 'The color of buttons.' }),
    ask_email: z.boolean().prefault(true).meta({
      description:
        'Whether a buyer needs the e-mail address of the purchase besides the license key. With `false`, everybody who has a license key sees its devices and can free their seats.',
    }),
  }),
);

const setting = onOrSection(buyers).meta({
  description:
    'The page for your buyers at `/license` (`examples/guides/buyers.md`): `true`, or these settings. Only an authority has it.',
});

declare module '../../../config/public-settings.ts' {
  interface PublicSettingsOfFeatures {
    readonly buyers: typeof setting;
  }
}

/** Only an authority knows the addresses of buyers. */
export const buyersSetting = { name: 'buyers', type: setting, roles: ['authority'] } as const;
