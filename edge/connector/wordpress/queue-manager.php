<?php
/**
 * Plugin Name:       Queue Manager
 * Description:       Sends visitors to a Queue Manager waiting room before they see this site.
 * Version:           1.0.0
 * Requires at least: 5.8
 * Requires PHP:      7.4
 * License:           Apache-2.0
 * License URI:       https://www.apache.org/licenses/LICENSE-2.0
 * Update URI:        https://queue-manager.invalid/wordpress
 * Text Domain:       queue-manager
 *
 * The update address names no host that exists, on purpose: updates come from the site's own Queue Manager server, and a plugin
 * of the same name in WordPress's directory can never take this one's place (includes/class-queue-manager-updates.php).
 */

if ( ! defined( 'ABSPATH' ) ) {
	exit;
}

define( 'QUEUE_MANAGER_FILE', __FILE__ );

require_once __DIR__ . '/includes/class-queue-manager-decision.php';
require_once __DIR__ . '/includes/class-queue-manager-visit.php';
require_once __DIR__ . '/includes/class-queue-manager-options.php';
require_once __DIR__ . '/includes/class-queue-manager-gate.php';
require_once __DIR__ . '/includes/class-queue-manager-updates.php';

( new Queue_Manager_Gate() )->register();
( new Queue_Manager_Updates() )->register();

if ( is_admin() ) {
	require_once __DIR__ . '/includes/class-queue-manager-settings.php';
	( new Queue_Manager_Settings() )->register();
}
