<?php
/**
 * Updates from the site's own Queue Manager server (GET /api/connectors/wordpress/update), shown on WordPress's own screens.
 */

if ( ! defined( 'ABSPATH' ) ) {
	exit;
}

final class Queue_Manager_Updates {

	const SLUG = 'queue-manager';

	public function register() {
		add_filter( 'update_plugins_queue-manager.invalid', array( $this, 'update' ), 10, 3 );
		add_filter( 'plugins_api', array( $this, 'details' ), 10, 3 );
		add_filter( 'upgrader_pre_download', array( $this, 'download' ), 10, 3 );
	}

	/**
	 * What WordPress should know of the version that the server offers. WordPress compares it with the installed one itself.
	 */
	public function update( $update, $plugin, $file ) {
		if ( plugin_basename( QUEUE_MANAGER_FILE ) !== $file ) {
			return $update;
		}
		$offer = $this->offer();
		if ( null === $offer ) {
			return $update;
		}
		return array(
			'slug'         => self::SLUG,
			'version'      => $offer['version'],
			'url'          => $this->text( $offer, 'homepage' ),
			'package'      => $this->package(),
			'tested'       => $this->text( $offer, 'tested' ),
			'requires'     => $this->text( $offer, 'requires' ),
			'requires_php' => $this->text( $offer, 'requires_php' ),
			'icons'        => isset( $offer['icons'] ) && is_array( $offer['icons'] ) ? $offer['icons'] : array(),
		);
	}

	/**
	 * The window behind "View details".
	 */
	public function details( $result, $action, $args ) {
		if ( 'plugin_information' !== $action || ! isset( $args->slug ) || self::SLUG !== $args->slug ) {
			return $result;
		}
		$offer = $this->offer();
		if ( null === $offer ) {
			return $result;
		}
		$offer['slug']          = self::SLUG;
		$offer['download_link'] = $this->package();
		$offer['sections']      = isset( $offer['sections'] ) && is_array( $offer['sections'] ) ? array_map( 'wp_kses_post', array_filter( $offer['sections'], 'is_string' ) ) : array();
		return (object) $offer;
	}

	/**
	 * Downloads the plugin's package itself, so that a package whose SHA-256 is not the one that the server named is never
	 * unpacked.
	 */
	public function download( $reply, $package, $upgrader ) {
		if ( false !== $reply ) {
			return $reply;
		}
		if ( $this->package() !== $package ) {
			return $reply; // another plugin's
		}
		$offer = $this->offer();
		if ( null === $offer ) {
			return new WP_Error( 'queue_manager_update', __( 'The Queue Manager server does not say what this package should be.', 'queue-manager' ) );
		}
		$file = download_url( $package );
		if ( is_wp_error( $file ) ) {
			return $file;
		}
		if ( ! hash_equals( $this->digest( $offer ), hash_file( 'sha256', $file ) ) ) {
			wp_delete_file( $file );
			return new WP_Error( 'queue_manager_update', __( 'The package is not the one that the Queue Manager server announced, and was thrown away.', 'queue-manager' ) );
		}
		return $file;
	}

	/**
	 * The server's answer, null when there is none that can be used.
	 */
	private function offer() {
		$base = Queue_Manager_Options::all()['base'];
		if ( '' === $base ) {
			return null;
		}
		$response = wp_remote_get(
			$base . '/api/v1/connectors/wordpress/update',
			array(
				'timeout'             => 5,
				'redirection'         => 0,
				'limit_response_size' => 262144,
			)
		);
		if ( is_wp_error( $response ) || 200 !== wp_remote_retrieve_response_code( $response ) ) {
			return null;
		}
		$offer = json_decode( wp_remote_retrieve_body( $response ), true );
		return is_array( $offer ) && isset( $offer['version'] ) && is_string( $offer['version'] ) ? $offer : null;
	}

	/**
	 * Where the package is: on the server as this site reaches it, whatever address others know it by.
	 */
	private function package() {
		return Queue_Manager_Options::all()['base'] . '/connectors/wordpress/latest.zip';
	}

	/**
	 * The package's SHA-256 in hex.
	 */
	private function digest( $offer ) {
		return strtolower( $this->text( $offer, 'sha256' ) );
	}

	private function text( $offer, $member ) {
		return isset( $offer[ $member ] ) && is_string( $offer[ $member ] ) ? $offer[ $member ] : '';
	}
}
