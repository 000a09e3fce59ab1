import { defineExport } from '../../csv/export.ts';

export const exportLicenses = defineExport('license', 'Export all licenses to a new CSV file');
